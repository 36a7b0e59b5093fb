import type { ReactNode } from "react";
import "./table.css";

/** A table of few columns. What is a number stands at the right. */
export function Table({ label, head, rows }: { label: string; head: readonly (string | { text: string; number: true })[]; rows: readonly { key: string; cells: readonly ReactNode[] }[] }) {
  const numeric = head.map((one) => typeof one !== "string");
  return (
    // It scrolls on a phone, and so it can have the focus.
    <div className="table-box" tabIndex={0} role="group" aria-label={label}>
      <table className="table">
        <thead>
          <tr>
            {head.map((one, n) => (
              <th key={n} scope="col" className={numeric[n] ? "num" : undefined}>
                {typeof one === "string" ? one : one.text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              {row.cells.map((cell, n) => (
                <td key={n} className={numeric[n] ? "num" : n === 0 ? "table-name" : undefined}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
