import type { ReactNode } from "react";
import { useChange } from "../../api/queries.ts";
import { NewRootKey } from "./new-root-key.tsx";
import { expiresOf, RootKeyForm } from "./root-key-form.tsx";

const EMPTY = { name: "", environment: "", permissions: [], expiresOn: "" };

/** Creates a root key and shows it once. */
export function CreateRootKey({ onClose }: { onClose: () => void }): ReactNode {
  const create = useChange("admin.createRootKey", { refreshes: ["admin.listRootKeys"] });
  if (create.data !== undefined) return <NewRootKey secret={create.data.rootKey} onClose={onClose} />;
  return (
    <RootKeyForm
      title="Create a root key"
      action="Create"
      doing="Creating the root key"
      initial={EMPTY}
      isBusy={create.isPending}
      error={create.error}
      onClose={onClose}
      onSubmit={(draft) => {
        const expires = expiresOf(draft);
        create.mutate({
          name: draft.name,
          permissions: [...draft.permissions],
          ...(draft.environment === "" ? {} : { environment: draft.environment }),
          ...(expires === undefined ? {} : { expires }),
        });
      }}
    />
  );
}
