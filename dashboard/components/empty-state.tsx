import { Inbox } from "lucide-react";
import type { ReactNode } from "react";

/**
 * Placeholder for an empty list that says why the list is empty, with the action that fills it, or with what is missing for that action.
 */
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
