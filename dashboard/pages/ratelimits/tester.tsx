import { type ReactNode, useEffect, useState } from "react";
import type { Data } from "../../../core/api/procedures.ts";
import { useRead } from "../../api/queries.ts";
import { Ago, FullTime } from "../../components/ago.tsx";
import { formatDuration } from "../../components/duration.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { TextField } from "../../components/text-field.tsx";
import "./tester.css";

type Explained = Data<"admin.explainOverride">;
type Match = Explained["matches"][number];

/** Delay between the last keystroke and the request. */
const SETTLED_MS = 250;
const COUNTS_EVERY_MS = 5000;

/**
 * Shows the limit that an identifier would have and the pattern that sets it, with the other matching patterns and the reasons why they do
 * not apply.
 */
export function Tester({ namespaceId }: { namespaceId: string }): ReactNode {
  const [text, setText] = useState("");
  const [identifier, setIdentifier] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setIdentifier(text), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const { data, error, refetch } = useRead(
    "admin.explainOverride",
    { namespace: namespaceId, identifier },
    { enabled: identifier !== "", everyMs: COUNTS_EVERY_MS },
  );
  return (
    <section className="tester" aria-label="Tester">
      <TextField
        label="Which limit does an identifier get?"
        value={text}
        onChange={setText}
        lengthMax={512}
        isMono
        placeholder="user_123"
        hint="Testing does not consume the limit."
      />
      <div role="status" className="tester-answer">
        {identifier !== "" && error !== null && (
          <ErrorNote error={error} doing="Finding the limit" again={() => void refetch()} />
        )}
        {identifier !== "" && data !== undefined && <ApiResponse identifier={identifier} explained={data} />}
      </div>
    </section>
  );
}

function ApiResponse({ identifier, explained }: { identifier: string; explained: Explained }): ReactNode {
  const { matches, matchCount, count, now } = explained;
  const [applied, ...others] = matches;
  if (applied === undefined) {
    return (
      <p>
        <code>{identifier}</code> has the limit that the call or policy specifies, because no override matches.
      </p>
    );
  }
  return (
    <>
      <p>
        <code>{identifier}</code> would have{" "}
        <strong>
          {applied.limit.toLocaleString("en")} per {formatDuration(applied.duration)}
        </strong>
        {applied.identifier === identifier ? (
          ", because of the override for exactly this identifier."
        ) : (
          <>
            , because of the pattern <code>{applied.identifier}</code>.
          </>
        )}
      </p>
      {count === undefined ? (
        <p className="muted">The usage of the limit is unknown, because Redis does not respond.</p>
      ) : (
        <p>
          {count.used.toLocaleString("en")} used, {count.remaining.toLocaleString("en")} remaining; this window ends at{" "}
          <FullTime atMs={count.reset} />, as of <Ago atMs={now} />
        </p>
      )}
      {others.length > 0 && (
        <>
          <p>Other matching overrides, which do not apply:</p>
          <ul>
            {others.map((match) => (
              <li key={match.overrideId}>
                <code>{match.identifier}</code>, {match.limit.toLocaleString("en")} per {formatDuration(match.duration)}
                : {whyNot(match, applied)}
              </li>
            ))}
            {matchCount > matches.length && <li>and {(matchCount - matches.length).toLocaleString("en")} more.</li>}
          </ul>
        </>
      )}
    </>
  );
}

function whyNot({ overriddenBy, literals }: Match, applied: Match): string {
  if (overriddenBy === "exactOne") return "an override for exactly this identifier takes precedence.";
  if (overriddenBy === "moreLiterals") {
    return `it has ${literals} characters other than *, the applied one has ${applied.literals}.`;
  }
  return `both have ${literals} characters other than *, and the applied one has the smaller id.`;
}
