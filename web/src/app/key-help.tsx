import { Dialog } from "../parts/overlay";
import { t } from "../words";

export default function KeyHelp({ onClose }: { onClose: () => void }) {
  const groups: [string, [string, string][]][] = [
    [
      t("Everywhere"),
      [
        ["Ctrl K", t("Go to, search, do")],
        ["/", t("Search")],
        ["?", t("This list")],
        ["g s", t("Sources")],
        ["g a", t("Ask")],
        ["g f", t("Facts")],
        ["g c", t("Concepts")],
        ["g d", t("Contradictions")],
        ["g i", t("Investigations")],
        ["g r", t("Reports")],
        ["g g", t("Graph")],
        ["g h", t("History")],
        ["g j", t("Jobs")],
        ["g m", t("Members")],
        ["g e", t("Settings")],
      ],
    ],
    [
      t("In lists"),
      [
        ["j  k", t("Next, previous row")],
        ["Enter", t("Open")],
        ["x", t("Select")],
        ["a", t("Add sources")],
      ],
    ],
    [
      t("When asking"),
      [
        ["Ctrl Enter", t("Ask")],
        ["Esc", t("Stop; what is there stays")],
        ["1 … 9", t("Open a piece of evidence")],
      ],
    ],
    [
      t("In the reader"),
      [
        ["n  p", t("Next, previous sentence of the fact")],
        ["f", t("Find in the document")],
        ["c", t("Copy the quote with its source")],
        ["[  ]", t("Document, facts")],
        ["←  →", t("Previous, next page")],
        ["o", t("The original file")],
      ],
    ],
    [
      t("In a report"),
      [
        ["n  p", t("Next, previous claim")],
        ["Esc", t("Choose no claim")],
      ],
    ],
    [t("In the graph"), [["t", t("Drawing, table")]]],
  ];
  return (
    <Dialog title={t("Keyboard")} open onClose={onClose}>
      <div className="stack">
        {groups.map(([name, keys]) => (
          <section key={name} className="stack tight">
            <h3>{name}</h3>
            <dl className="keys">
              {keys.map(([key, does]) => (
                <div key={key} className="row">
                  <dt>
                    <kbd>{key}</kbd>
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
