import type { ReactNode } from "react";

export function Section({ title, hint, children }: { title: string; hint?: ReactNode; children: ReactNode }) {
  return (
    <section className="card stack tight" aria-label={title}>
      <h2>{title}</h2>
      {hint && <p className="soft">{hint}</p>}
      {children}
    </section>
  );
}
