import { Search } from "lucide-react";
import { type ComponentType, type ReactNode, useEffect, useRef, useState } from "react";
import { useToast } from "../components/toast.tsx";
import "./search.css";

const IS_APPLE = /Mac|iPhone|iPad/.test(navigator.platform);

/**
 * Button that opens the search over pages, actions and objects. ⌘K and Ctrl+K open it as well. Its dialog is loaded when it is first
 * opened.
 */
export function SearchButton(): ReactNode {
  const [Opened, setOpened] = useState<ComponentType<{ onClose: () => void }>>();
  const toast = useToast();
  const open = async (): Promise<void> => {
    try {
      const { SearchDialog } = await loadDialog();
      // Another dialog may have opened while this one was being loaded.
      if (!hasDialog()) setOpened(() => SearchDialog);
    } catch {
      toast("The search could not be loaded. Reload the page, then try again.");
    }
  };
  const latest = useRef(open);
  latest.current = open;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (!isShortcut(event) || event.defaultPrevented) return;
      event.preventDefault();
      // Does not open over a dialog, because navigation would discard the dialog's input.
      if (!hasDialog()) void latest.current();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  return (
    <>
      <button
        type="button"
        className="button search-button"
        aria-keyshortcuts={IS_APPLE ? "Meta+K" : "Control+K"}
        onPointerEnter={() => void loadDialog().catch(() => undefined)}
        onClick={() => void open()}
      >
        <Search size={14} aria-hidden />
        <span className="search-button-label">Search</span>
        <kbd aria-hidden>{IS_APPLE ? "⌘K" : "Ctrl K"}</kbd>
      </button>
      {Opened !== undefined && <Opened onClose={() => setOpened(undefined)} />}
    </>
  );
}

const loadDialog = () => import("./search-dialog.tsx");

const hasDialog = (): boolean => document.querySelector("[role=dialog]") !== null;

/**
 * On Apple devices, Ctrl+K deletes to the end of a line, so only ⌘K counts. On a layout without Latin letters, the key at K's usual
 * position counts.
 */
function isShortcut({ key, code, metaKey, ctrlKey, altKey, shiftKey }: KeyboardEvent): boolean {
  const isModified = (IS_APPLE ? metaKey && !ctrlKey : ctrlKey && !metaKey) && !altKey && !shiftKey;
  return isModified && (key.toLowerCase() === "k" || (code === "KeyK" && !/^[a-z]$/i.test(key)));
}
