import { type ReactNode, useEffect } from "react";
import "./page.css";

/**
 * Frame of a page: title, one sentence about its purpose, and actions. The title is also the document title. The shell focuses the title
 * when the page opens, so that a screen reader announces the page.
 */
export function Page({
  title,
  about,
  actions,
  children,
}: {
  title: string;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}): ReactNode {
  useEffect(() => {
    document.title = `${title} · Postern`;
  }, [title]);
  return (
    <article className="page">
      <header className="page-head">
        <div className="page-title">
          <h1 tabIndex={-1}>{title}</h1>
          {about !== undefined && <p className="muted">{about}</p>}
        </div>
        {actions !== undefined && <div className="page-actions">{actions}</div>}
      </header>
      {children}
    </article>
  );
}
