import { Link } from "@tanstack/react-router";
import { MenuIcon } from "lucide-react";
import { type ReactNode, useId, useState } from "react";
import { AccountMenu } from "./account-menu.tsx";
import { NAVIGATION } from "./navigation.ts";
import { SearchButton } from "./search-button.tsx";
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
          <MenuIcon size={18} aria-hidden />
          <span className="unseen">Menu</span>
        </button>
        <Link to="/" className="brand" aria-label="Postern">
          <Mark />
          <span>Postern</span>
        </Link>
        <WorkspaceSwitch />
        <span className="top-gap" />
        <SearchButton />
        <AccountMenu />
      </header>
      <nav id={id} className={isOpen ? "side side-open" : "side"} aria-label="Pages">
        {NAVIGATION.map(({ title, entries }) => (
          <section key={title}>
            <h2>{title}</h2>
            <ul>
              {entries.map(({ to, label, icon: Icon }) => (
                <li key={label}>
                  <Link
                    to={to}
                    activeOptions={{ exact: to === "/", includeSearch: false }}
                    activeProps={{ "aria-current": "page" }}
                    onClick={() => setOpen(false)}
                  >
                    <Icon size={16} aria-hidden />
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

/** The logo of Postern: a gate with a narrow opening, as in icon.svg. */
function Mark(): ReactNode {
  return (
    <svg width="24" height="24" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" className="mark-ground" />
      <path d="M9 26V14a7 7 0 0 1 14 0v12" className="mark-gate" />
      <path d="M16 26V13" className="mark-opening" />
    </svg>
  );
}
