import { type ReactNode, useState } from "react";
import type { ApiError } from "../../api/api-error.ts";
import { useChange } from "../../api/queries.ts";
import { useSessionAgain } from "../../api/session.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useDone } from "../../components/toast.tsx";
import { problemAt } from "./fault-at.ts";
import { useUpdateWorkspace } from "./use-update-workspace.ts";
import { NAME_HINT, nameProblem, SHOWN_BY, type Workspace } from "./workspace.ts";

export function CreateWorkspace({ onClose }: { onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  const sessionAgain = useSessionAgain();
  const create = useChange("admin.createWorkspace", { refreshes: SHOWN_BY });
  return (
    <NameDialog
      title="Create a workspace"
      action="Create"
      doing="Creating the workspace"
      initial=""
      isBusy={create.isPending}
      error={create.error}
      onClose={onClose}
      onSubmit={(name) =>
        create.mutate(
          { name },
          {
            onSuccess: () => {
              done(`The workspace ${name} is created.`);
              sessionAgain();
            },
          },
        )
      }
    >
      <p>
        Everything in a workspace is separate from all others: keys, root keys, limits, usage and its audit log. Choose
        it above, once it is there, and make its first root key.
      </p>
    </NameDialog>
  );
}

export function RenameWorkspace({ workspace, onClose }: { workspace: Workspace; onClose: () => void }): ReactNode {
  const [{ workspaceId, name: before }] = useState(workspace);
  const { save, isBusy, error } = useUpdateWorkspace(workspaceId, onClose);
  return (
    <NameDialog
      title={`Rename the workspace ${before}`}
      action="Rename"
      doing="Renaming the workspace"
      initial={before}
      isBusy={isBusy}
      error={error}
      onClose={onClose}
      onSubmit={(name) => save({ name }, `The workspace is renamed to ${name}.`)}
    >
      <p>
        Its id, root keys, gates and manifests go on as before. The file of roles, and commands with{" "}
        <code>--workspace</code>, that say <code>{before}</code> no longer find it: people whose role is given by this
        name lose it at once, until the file has the new one.
      </p>
    </NameDialog>
  );
}

function NameDialog({
  title,
  action,
  doing,
  initial,
  isBusy,
  error,
  onSubmit,
  onClose,
  children,
}: {
  title: string;
  action: string;
  doing: string;
  initial: string;
  isBusy: boolean;
  error: ApiError | null;
  onSubmit: (name: string) => void;
  onClose: () => void;
  children: ReactNode;
}): ReactNode {
  const [name, setName] = useState(initial);
  // The field shows the server's error until the value changes.
  const [sent, setSent] = useState<string>();
  const refused = sent === name && error !== null ? (takenText(error) ?? problemAt(error, "name")) : undefined;
  const fault = nameProblem(name);
  const unusable =
    fault ?? (name === "" ? "Give it a name." : name === initial ? "Nothing is changed yet." : undefined);
  return (
    <FormDialog
      title={title}
      action={action}
      doing={doing}
      fault={unusable}
      isBusy={isBusy}
      error={error}
      onClose={onClose}
      onSubmit={() => {
        setSent(name);
        onSubmit(name);
      }}
    >
      {children}
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        hint={NAME_HINT}
        fault={fault ?? refused}
        placeholder="team-shop"
        lengthMax={63}
        isRequired
      />
    </FormDialog>
  );
}

const takenText = ({ kind }: ApiError): string | undefined =>
  kind === "workspace_already_exists" ? "Another workspace has this name, or had it." : undefined;
