//! All parts on one page, in development only: `/dev/parts`.

import { FileText } from "lucide-react";
import { useState } from "react";
import { ApiError } from "../api/client";
import { TopShell } from "../app/shell";
import { say } from "../app/toasts";
import { Badge, PostureBadge, StandingBadge } from "../parts/badges";
import { Button } from "../parts/button";
import { Checkbox, Field, Select } from "../parts/form";
import { Confirm, Menu, MenuItem } from "../parts/overlay";
import Prose from "../parts/prose";
import { Empty, Failure, Skeleton } from "../parts/states";

export default function Gallery() {
  const [on, setOn] = useState(true);
  const [one, setOne] = useState<"a" | "b">("a");
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  return (
    <TopShell>
      <div className="page stack wide">
        <h1>Parts</h1>
        <section className="card stack">
          <h2>Buttons</h2>
          <div className="row">
            <Button primary>Primary</Button>
            <Button>Button</Button>
            <Button danger onPress={() => setOpen(true)}>Danger</Button>
            <Button quiet>Quiet</Button>
            <Button small>Small</Button>
            <Button isDisabled>Disabled</Button>
            <Button busy>Busy</Button>
            <Button onPress={() => say("Something was done", () => {})}>Toast</Button>
            <Menu label="More">
              <MenuItem>Rename</MenuItem>
              <MenuItem danger>Delete</MenuItem>
            </Menu>
          </div>
        </section>
        <section className="card stack">
          <h2>Forms</h2>
          <Field label="Name" value={text} onChange={setText} hint="A hint." />
          <Field label="Wrong" value="x" error="This is not right." />
          <Select label="Order" value={one} onChange={setOne} options={[["a", "Newest first"], ["b", "Oldest first"]]} />
          <Checkbox checked={on} onChange={setOn}>Also small ones</Checkbox>
        </section>
        <section className="card row">
          <PostureBadge posture="supports" n={3} />
          <PostureBadge posture="contradicts" />
          <PostureBadge posture="related" />
          <StandingBadge state="unsupported" />
          <StandingBadge state="waiting" />
          <Badge>plain</Badge>
        </section>
        <section className="card">
          <Prose text={"A *definition* with [a claim](<fact:1>)[²](<fact:2>).\n\n- [link](https://example.org) <script>alert(1)</script>\n- ![picture](https://example.org/x.png)"} />
        </section>
        <Skeleton rows={3} />
        <Empty icon={<FileText aria-hidden />} title="No sources yet" action={<Button primary>Add sources</Button>}>
          Drop PDFs anywhere on this page.
        </Empty>
        <Failure error={new ApiError(500, "internal", "Internal error", "Something broke.", "0199-abc", [], null)} retry={() => {}} />
        <Confirm title="Delete?" open={open} onClose={() => setOpen(false)} onConfirm={() => setOpen(false)} action="Delete">
          <p>Really.</p>
        </Confirm>
      </div>
    </TopShell>
  );
}
