import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { manifestsOf } from "../../core/manifests/from-store/manifests-of.ts";
import type { StoredObject } from "../../core/manifests/from-store/stored-object.ts";
import { Button } from "./button.tsx";
import { CodeBlock } from "./code-block.tsx";
import { Dialog } from "./dialog.tsx";
import { downloadText } from "./download.ts";
import { ErrorNote } from "./error-note.tsx";

/** "Show as YAML" button: shows the manifest of an object, ready to apply. */
export function YamlButton({ object }: { object: StoredObject }): ReactNode {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Show as YAML</Button>
      <Dialog title="Manifest" isOpen={isOpen} onClose={() => setOpen(false)} isWide>
        {isOpen && <YamlView object={object} />}
      </Dialog>
    </>
  );
}

/**
 * Shows the manifest of an object as YAML. The YAML writer contains the schemas of all kinds, so it is loaded when a manifest is first
 * shown.
 */
export function YamlView({ object }: { object: StoredObject }): ReactNode {
  const {
    data: text,
    error,
    refetch,
  } = useQuery({
    queryKey: ["yaml", object],
    queryFn: async () => {
      const { yamlOf } = await import("./manifest-writer.ts");
      return yamlOf(object);
    },
    retry: false,
    gcTime: 0,
  });
  if (error !== null) return <ErrorNote error={error} doing="Writing the manifest" again={() => void refetch()} />;
  if (text === undefined) {
    return (
      <p className="muted" role="status">
        Loading …
      </p>
    );
  }
  const name = manifestsOf(object).at(-1)?.metadata.name ?? "manifest";
  const file = `${name}.yaml`;
  const isManaged = object.manager !== undefined;
  return (
    <>
      <p>
        {isManaged
          ? "Stored state of an object that a manifest already manages."
          : "When you apply this manifest, it adopts the stored object without changing it. From then on, only the manifest can change the object."}
      </p>
      <CodeBlock label={file} text={text} />
      {!isManaged && <CodeBlock label="Apply the manifest" text={`kubectl apply -n NAMESPACE -f ${file}`} />}
      <p>
        <Button onClick={() => downloadText({ name: file, text, type: "application/yaml" })}>Download</Button>
      </p>
    </>
  );
}
