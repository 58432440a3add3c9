import { type ReactNode, useEffect, useState } from "react";
import { Button } from "./button.tsx";

const SHOWN_MS = 2000;

/** Copies a text, and says whether it did: a browser may refuse. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }): ReactNode {
  const [outcome, setOutcome] = useState<"copied" | "failed">();
  useEffect(() => {
    if (outcome === undefined) return;
    const timer = setTimeout(() => setOutcome(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async (): Promise<void> => {
    // There is no clipboard where the page came by plain HTTP from another machine.
    const done = (await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    )) as boolean | undefined;
    setOutcome(done === true ? "copied" : "failed");
  };
  return (
    <>
      <Button onClick={() => void copy()}>{outcome === "copied" ? "Copied" : label}</Button>
      <span role="status" className={outcome === "failed" ? "field-fault" : "unseen"}>
        {outcome === "failed" ? "The browser refused: select the text and copy it." : (outcome ?? "")}
      </span>
    </>
  );
}
