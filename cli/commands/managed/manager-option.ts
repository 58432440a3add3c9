import { UsageError } from "../../command.ts";

const PART = /^[a-zA-Z0-9._-]{1,253}$/;

/** A manager's name, or the beginning of one: up to four parts with slashes between them. */
export function parseManager(option: string, text: string): string {
  const parts = text.split("/");
  if (parts.length <= 4 && parts.every((part) => PART.test(part))) return text;
  throw new UsageError(
    `--${option} wants CLUSTER, CLUSTER/KIND, CLUSTER/KIND/NAMESPACE or CLUSTER/KIND/NAMESPACE/NAME`,
  );
}
