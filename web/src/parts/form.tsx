import { Check, ChevronDown } from "lucide-react";
import { type FormEvent, type ReactNode, useId, useLayoutEffect, useRef, useState } from "react";
import {
  Button as AriaButton,
  Checkbox as AriaCheckbox,
  FieldError,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
  Select as AriaSelect,
  SelectValue,
  Text,
  TextArea,
  TextField,
  type TextFieldProps,
} from "react-aria-components";
import { reason } from "../app/queries";
import { ApiError } from "../api/client";
import { t } from "../words";
import "./form.css";

export function Field({ label, hint, error, area, rows, placeholder, mono, ...props }: TextFieldProps & { label: string; hint?: ReactNode; error?: string; area?: boolean; rows?: number; placeholder?: string; mono?: boolean }) {
  const [caps, setCaps] = useState(false);
  const secret = props.type === "password";
  return (
    <TextField {...props} className="field" isInvalid={error !== undefined} validationBehavior="aria">
      <Label>{label}</Label>
      {area ? (
        <TextArea className={mono ? "input mono" : "input"} rows={rows ?? 5} placeholder={placeholder} />
      ) : (
        <Input className="input" placeholder={placeholder} onKeyUp={secret ? (event) => setCaps(event.getModifierState("CapsLock")) : undefined} />
      )}
      {caps && <p className="field-hint warn">{t("Caps Lock is on.")}</p>}
      {hint && (
        <Text slot="description" className="field-hint">
          {hint}
        </Text>
      )}
      <FieldError className="field-error">{error}</FieldError>
    </TextField>
  );
}

export function Select<T extends string>({ label, value, onChange, options, hideLabel, small }: { label: string; value: T; onChange: (value: T) => void; options: readonly (readonly [T, string])[]; hideLabel?: boolean; small?: boolean }) {
  return (
    <AriaSelect className={small ? "select small" : "select"} value={value} onChange={(key) => onChange(key as T)} aria-label={hideLabel ? label : undefined}>
      {!hideLabel && <Label>{label}</Label>}
      <AriaButton className="button select-button">
        <SelectValue>{({ selectedText }) => selectedText}</SelectValue>
        <ChevronDown aria-hidden size={16} />
      </AriaButton>
      <Popover className="popover">
        <ListBox className="menu">
          {options.map(([id, name]) => (
            <ListBoxItem key={id} id={id} textValue={name} className="menu-item">
              {({ isSelected }) => (
                <>
                  <span className="menu-tick">{isSelected && <Check aria-hidden size={14} />}</span>
                  {name}
                </>
              )}
            </ListBoxItem>
          ))}
        </ListBox>
      </Popover>
    </AriaSelect>
  );
}

export function Checkbox({ children, checked, onChange, label }: { children?: ReactNode; checked: boolean; onChange: (checked: boolean) => void; label?: string }) {
  return (
    <AriaCheckbox className="checkbox" isSelected={checked} onChange={onChange} aria-label={label}>
      {({ isSelected }) => (
        <>
          <span className="checkbox-box" aria-hidden>
            {isSelected && <Check size={14} strokeWidth={3} />}
          </span>
          {children}
        </>
      )}
    </AriaCheckbox>
  );
}

/** A form that does not leave the page, with what was wrong at its top. */
export function Form({ onSubmit, error, children, label }: { onSubmit: () => void; error?: unknown; children: ReactNode; label?: string }) {
  const id = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit();
  };
  const form = useRef<HTMLFormElement>(null);
  const inFields = error instanceof ApiError && error.fields.length > 0;
  // What no field of the form says of itself would be said nowhere.
  const [left, setLeft] = useState("");
  useLayoutEffect(() => {
    const said = [...(form.current?.querySelectorAll(".field-error") ?? [])].map((one) => one.textContent);
    setLeft(inFields ? error.fields.filter((one) => !said.includes(one.message)).map((one) => `${one.field}: ${one.message}`).join("; ") : "");
  }, [error, inFields]);
  const wrong = inFields ? left : error ? reason(error) : "";
  return (
    <form ref={form} className="stack" onSubmit={submit} aria-label={label} aria-describedby={wrong ? id : undefined} noValidate>
      {wrong && (
        <p id={id} className="note wrong break" role="alert">
          {wrong}
          {error instanceof ApiError && error.retryAfter !== null && ` ${t("Try again in {n} seconds.", { n: error.retryAfter })}`}
        </p>
      )}
      {children}
    </form>
  );
}
