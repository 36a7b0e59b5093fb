//! What lies over the page: dialogs, menus, hints.

import { Ellipsis, X } from "lucide-react";
import { type ReactNode, useRef } from "react";
import {
  Button as AriaButton,
  Dialog as AriaDialog,
  Heading,
  Menu as AriaMenu,
  MenuItem as AriaMenuItem,
  type MenuItemProps,
  MenuTrigger,
  Modal,
  ModalOverlay,
  Popover,
} from "react-aria-components";
import { t } from "../words";
import { Button } from "./button";
import "./overlay.css";

export function Dialog({ title, open, onClose, children, wide, side, fixed }: { title: string; open: boolean; onClose: () => void; children: ReactNode; wide?: boolean; side?: boolean; fixed?: boolean }) {
  // What somebody has written is not lost by a click beside it.
  const written = useRef(false);
  return (
    <ModalOverlay className={side ? "veil side" : "veil"} isOpen={open} onOpenChange={(is) => !is && onClose()} isDismissable={!fixed} shouldCloseOnInteractOutside={() => !written.current} isKeyboardDismissDisabled={fixed}>
      <Modal className={`modal${wide ? " wide" : ""}${side ? " side" : ""}`}>
        <AriaDialog className="dialog">
          <header className="dialog-head">
            <Heading slot="title" className="grow">
              {title}
            </Heading>
            {!fixed && (
              <Button quiet small onPress={onClose} aria-label={t("Close")}>
                <X aria-hidden />
              </Button>
            )}
          </header>
          <div className="dialog-body" onInput={(event) => { if ((event.target as HTMLInputElement).type !== "search") written.current = true; }}>
            {children}
          </div>
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/** Asks before something that can't be undone. `unsure`: what it would do is not known yet. */
export function Confirm({ title, open, onClose, onConfirm, action, children, busy, unsure }: { title: string; open: boolean; onClose: () => void; onConfirm: () => void; action: string; children: ReactNode; busy?: boolean; unsure?: boolean }) {
  return (
    <Dialog title={title} open={open} onClose={onClose}>
      <div className="stack">
        {children}
        <div className="row dialog-buttons">
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button danger onPress={onConfirm} busy={busy} isDisabled={unsure}>
            {action}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

export function Menu({ label, trigger, children, quiet = true }: { label: string; trigger?: ReactNode; children: ReactNode; quiet?: boolean }) {
  return (
    <MenuTrigger>
      <AriaButton className={`button small${quiet ? " quiet" : ""}`} aria-label={label}>
        {trigger ?? <Ellipsis aria-hidden />}
      </AriaButton>
      <Popover className="popover">
        <AriaMenu className="menu">{children}</AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}

export function MenuItem({ danger, ...props }: MenuItemProps & { danger?: boolean }) {
  return <AriaMenuItem {...props} className={danger ? "menu-item danger" : "menu-item"} />;
}
