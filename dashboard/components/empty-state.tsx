import { Inbox } from "lucide-react";
import type { ReactNode } from "react";

/** Placeholder for an empty list. It says why the list is empty, and shows the action that fills it or what is missing for that action. */
export function EmptyState({ title, children }: { title: string; children?: ReactNode }): ReactNode {
  return (
    <div className="empty">
      <Inbox size={28} strokeWidth={1.5} aria-hidden />
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  );
}
