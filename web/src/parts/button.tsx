import { Link as RouterLink, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Button as AriaButton, type ButtonProps } from "react-aria-components";
import "./button.css";

type Looks = { primary?: boolean; danger?: boolean; quiet?: boolean; small?: boolean; busy?: boolean };

const look = ({ primary, danger, quiet, small }: Looks, more = "") =>
  `button${primary ? " primary" : ""}${danger ? " danger" : ""}${quiet ? " quiet" : ""}${small ? " small" : ""}${more ? ` ${more}` : ""}`;

export function Button({ primary, danger, quiet, small, busy, className, ...props }: ButtonProps & Looks) {
  const more = typeof className === "string" ? className : "";
  return <AriaButton {...props} isPending={busy} className={look({ primary, danger, quiet, small }, more)} />;
}

/** A link that looks like a button. */
export function LinkButton({ primary, quiet, small, className, children, ...props }: LinkProps & Looks & { className?: string; children?: ReactNode }) {
  return (
    <RouterLink {...(props as LinkProps)} className={look({ primary, quiet, small }, className)}>
      {children}
    </RouterLink>
  );
}
