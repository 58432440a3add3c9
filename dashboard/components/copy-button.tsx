import { type ReactNode, useEffect, useState } from "react";
import { Button } from "./button.tsx";

const SHOWN_MS = 2000;

/** Button that copies text and shows whether copying worked, because a browser may deny it. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }): ReactNode {
  const [outcome, setOutcome] = useState<"copied" | "failed">();
  useEffect(() => {
    if (outcome === undefined) return;
    const timer = setTimeout(() => setOutcome(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async (): Promise<void> => {
    // Browsers provide `navigator.clipboard` only over HTTPS and on localhost.
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
        {outcome === "failed" ? "The browser does not allow copying: select the text and copy it." : (outcome ?? "")}
      </span>
    </>
  );
}
