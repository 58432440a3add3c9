import type { ReactNode } from "react";
import { CopyButton } from "./copy-button.tsx";
import "./code-block.css";

/** Text to copy verbatim: a manifest or a command line. */
export function CodeBlock({ label, text }: { label: string; text: string }): ReactNode {
  return (
    <figure className="code">
      <figcaption>
        <span>{label}</span>
        <CopyButton text={text} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard. */}
      <pre tabIndex={0}>{text}</pre>
    </figure>
  );
}
