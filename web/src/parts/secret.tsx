import { Copy } from "lucide-react";
import { complain, say } from "../app/toasts";
import { t } from "../words";
import { Button } from "./button";

/** What is shown this once. */
export function Secret({ label, value }: { label: string; value: string }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(value);
      say(t("Copied"));
    } catch {
      complain(t("The browser does not let this page copy."));
    }
  };
  return (
    <div className="field">
      <label htmlFor="secret">{label}</label>
      <div className="row nowrap">
        <input id="secret" className="input mono grow" readOnly value={value} onFocus={(event) => event.target.select()} />
        <Button onPress={() => void copy()}>
          <Copy aria-hidden /> {t("Copy")}
        </Button>
      </div>
      <p className="field-hint warn">{t("It is shown this once. Keep it where nobody else can read it.")}</p>
    </div>
  );
}
