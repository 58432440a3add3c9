import { Link } from "@tanstack/react-router";
import { type ReactNode, useId, useState } from "react";
import { AccountMenu } from "./account-menu.tsx";
import { NAVIGATION } from "./navigation.ts";
import { ThemeSwitch } from "./theme.tsx";
import { WorkspaceSwitch } from "./workspace-switch.tsx";
import "./frame.css";

/** Navigation on the left, or behind a button on narrow screens, with global notices above the page. */
export function Frame({ notices, children }: { notices: ReactNode; children: ReactNode }): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  return (
    <div className="frame">
      <a className="skip" href="#page">
        Skip to the page
      </a>
      <header className="top">
        <button
          type="button"
          className="button button-quiet fold"
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={() => setOpen(!isOpen)}
        >
          Menu
        </button>
        <span className="brand">Postern</span>
        <WorkspaceSwitch />
        <span className="top-gap" />
        <ThemeSwitch />
        <AccountMenu />
      </header>
      <nav id={id} className={isOpen ? "side side-open" : "side"} aria-label="Pages">
        {NAVIGATION.map(({ title, entries }) => (
          <section key={title}>
            <h2>{title}</h2>
            <ul>
              {entries.map(({ to, label }) => (
                <li key={label}>
                  <Link to={to} activeProps={{ "aria-current": "page" }} onClick={() => setOpen(false)}>
                    {label}
                  </Link>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </nav>
      <div className="content">
        <div className="notices">{notices}</div>
        <main id="page" tabIndex={-1}>
          {children}
        </main>
      </div>
    </div>
  );
}
