import { Link } from "@tanstack/react-router";
import { t } from "../words";
import "./sources.css";

/** What belongs to the account of the reader. */
export function AccountTabs() {
  return (
    <nav className="tablist" aria-label={t("Account")}>
      <Link to="/account" className="tab" activeOptions={{ exact: true }} activeProps={{ "aria-current": "page" }}>
        {t("Profile")}
      </Link>
      <Link to="/account/keys" className="tab" activeProps={{ "aria-current": "page" }}>
        {t("Keys")}
      </Link>
      <Link to="/account/programs" className="tab" activeProps={{ "aria-current": "page" }}>
        {t("Programs")}
      </Link>
      <Link to="/account/connect" className="tab" activeProps={{ "aria-current": "page" }}>
        {t("Agents")}
      </Link>
    </nav>
  );
}
