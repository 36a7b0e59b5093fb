//! Markdown as elements. Nothing in it becomes a script, a frame or a request; citations become buttons.

import { Children, isValidElement, type ReactNode } from "react";
import Markdown from "react-markdown";
import rehypeSanitize, { defaultSchema } from "rehype-sanitize";
import remarkGfm from "remark-gfm";
import { t } from "../words";
import "./prose.css";

const schema = {
  ...defaultSchema,
  tagNames: (defaultSchema.tagNames ?? []).filter((name) => !["img", "input", "picture", "source"].includes(name)),
  protocols: { ...defaultSchema.protocols, href: ["http", "https", "mailto", "fact", "concept"] },
};

const text = (node: ReactNode): string =>
  Children.toArray(node)
    .map((one) => (typeof one === "string" || typeof one === "number" ? String(one) : isValidElement<{ children?: ReactNode }>(one) ? text(one.props.children) : ""))
    .join("");

export default function Prose({ text: markdown, onFact, onConcept, chosen }: { text: string; onFact?: (id: string) => void; onConcept?: (id: string) => void; chosen?: string | null }) {
  return (
    <div className="prose serif">
      <Markdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[[rehypeSanitize, schema]]}
        urlTransform={(url) => (/^(https?:|mailto:|fact:|concept:)/i.test(url) ? url : "")}
        components={{
          a({ href = "", children }) {
            const [kind, id = ""] = href.split(/:(.*)/s);
            if (kind === "fact")
              return (
                <button type="button" className="cite" aria-pressed={id === chosen} aria-label={t("The fact behind: {text}", { text: text(children) })} onClick={() => onFact?.(id)}>
                  {children}
                </button>
              );
            if (kind === "concept")
              return (
                <button type="button" className="cite plain" onClick={() => onConcept?.(id)}>
                  {children}
                </button>
              );
            if (!href) return <span>{children}</span>;
            return (
              <a href={href} target="_blank" rel="noreferrer noopener nofollow">
                {children}
              </a>
            );
          },
        }}
      >
        {markdown}
      </Markdown>
    </div>
  );
}
