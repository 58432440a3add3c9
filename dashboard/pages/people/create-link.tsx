import { type ReactNode, useState } from "react";
import { PERSON_ROLES, type PersonRole } from "../../../core/permissions/person-roles.ts";
import { useChange } from "../../api/queries.ts";
import { useWorkspace } from "../../api/session.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { SecretDialog } from "../../components/secret-dialog.tsx";
import { Select } from "../../components/select.tsx";
import { TextField } from "../../components/text-field.tsx";
import { fullText } from "../../components/time.ts";
import { roleText } from "./person.ts";

const ROLE_HINTS: Readonly<Record<PersonRole, string>> = {
  viewer: "Reads everything in the workspace except keys.",
  operator: "Also changes keys, identities, roles, permissions and limits.",
  admin: "Everything in the workspace: root keys, people, settings, decrypting keys.",
};

interface Draft {
  readonly name: string;
  readonly role: PersonRole;
  readonly where: "this" | "all";
}

/** Creates a sign-in link and shows it once. */
export function CreateLink({ onClose }: { onClose: () => void }): ReactNode {
  const { session, workspace } = useWorkspace();
  const [{ name, role, where }, setDraft] = useState<Draft>({ name: "", role: "viewer", where: "this" });
  const set = (change: Partial<Draft>): void => setDraft((before) => ({ ...before, ...change }));
  const create = useChange("admin.createSignInLink", { refreshes: ["admin.listSignInLinks"] });
  const allWorkspaces = where === "all";
  const person = name.trim();
  if (create.data !== undefined) {
    const { token, expires } = create.data;
    return (
      <NewLink
        token={token}
        name={person}
        role={roleText({ role, allWorkspaces })}
        expires={expires}
        onClose={onClose}
      />
    );
  }
  return (
    <FormDialog
      title="Create a sign-in link"
      action="Create"
      doing="Creating the sign-in link"
      fault={person === "" ? "Enter the name of the person." : undefined}
      isBusy={create.isPending}
      error={create.error}
      onClose={onClose}
      onSubmit={() => create.mutate({ name: person, role, allWorkspaces })}
    >
      <p>
        The link signs in one person, once, within five minutes. You vouch for the person: this list and the audit log
        show that you made the link.
        {session.person.signedInBy === "link" && " The session ends with yours at the latest."}
      </p>
      <TextField
        label="Name of the person"
        name="name"
        value={name}
        onChange={(text) => set({ name: text })}
        hint="Changes of the person are in the audit log under this name."
        lengthMax={255}
        isRequired
      />
      <Select
        label="Role"
        value={role}
        options={PERSON_ROLES.map((value) => ({ value, label: value }))}
        onChange={(chosen) => set({ role: chosen })}
        hint={ROLE_HINTS[role]}
      />
      {session.isInstallationAdmin && (
        <Select
          label="Where"
          value={where}
          options={[
            { value: "this", label: `the workspace ${workspace.name}` },
            { value: "all", label: "all workspaces" },
          ]}
          onChange={(chosen) => set({ where: chosen })}
          {...(allWorkspaces && role === "admin" ? { hint: "The person also administers the installation." } : {})}
        />
      )}
    </FormDialog>
  );
}

/** Shows a sign-in link that was just created. */
function NewLink({
  token,
  name,
  role,
  expires,
  onClose,
}: {
  token: string;
  name: string;
  role: string;
  expires: number;
  onClose: () => void;
}): ReactNode {
  return (
    <SecretDialog
      title="The new sign-in link"
      label="Sign-in link"
      what="link"
      // The token is in the fragment, which browsers do not send to servers.
      secret={`${location.origin}/dashboard/sign-in#token=${token}`}
      onClose={onClose}
    >
      <p>
        Send it only to <bdi>{name}</bdi>: whoever opens it first is signed in as {role}. It works once, until{" "}
        {fullText(expires)}. To try it yourself, use a private window.
      </p>
    </SecretDialog>
  );
}
