import { type ReactNode, useId } from "react";
import "./form.css";

/** Titled part of a form. A screen reader announces the title when it enters the part. */
export function FormSection({ title, children }: { title: string; children: ReactNode }): ReactNode {
  const id = useId();
  return (
    // biome-ignore lint/a11y/useSemanticElements: a legend cannot stand beside its fields.
    <div className="form-section" role="group" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      <div className="form-fields">{children}</div>
    </div>
  );
}

/** Rarely used parts of a form, folded. A form dialog unfolds them when one of their fields has a problem. */
export function MoreOptions({ children }: { children: ReactNode }): ReactNode {
  return (
    <details className="form-more">
      <summary>More options</summary>
      {children}
    </details>
  );
}
