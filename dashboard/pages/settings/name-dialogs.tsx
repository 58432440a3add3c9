import { type ReactNode, useState } from "react";
import type { ApiError } from "../../api/api-error.ts";
import { useChange } from "../../api/queries.ts";
import { useSessionAgain } from "../../api/session.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useDone } from "../../components/toast.tsx";
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
              done(`Workspace ${name} created.`);
              sessionAgain();
            },
          },
        )
      }
    >
      <p>
        Workspaces are isolated from each other: keys, root keys, limits, usage and audit log. Select the new workspace
        at the top of the page and create its first root key.
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
      onSubmit={(name) => save({ name }, `Workspace renamed to ${name}.`)}
    >
      <p>
        Its id, root keys, gates and manifests are unaffected. The roles file, and commands with{" "}
        <code>--workspace</code>, that refer to <code>{before}</code> no longer find the workspace: users whose role
        depends on the name lose it until the file has the new name.
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
  // Submitted name; the field shows the server's error until the name changes.
  const [sent, setSent] = useState<string>();
  const refused = sent === name && error !== null ? takenText(error) : undefined;
  const fault = nameProblem(name);
  const unusable = fault ?? (name === "" ? "Enter a name." : name === initial ? "No changes yet." : undefined);
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
        name="name"
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
  kind === "workspace_already_exists" ? "This name belongs to another workspace, or belonged to one." : undefined;
