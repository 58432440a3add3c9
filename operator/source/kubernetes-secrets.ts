import { API_VERSION } from "../../core/manifests/index.ts";
import { isKubeError, type KubeClient, type KubeObject } from "../runtime/kube-client.ts";
import type { FoundSecret, ManifestObject, SecretContent, SecretStore } from "./contract.ts";

/*
 * Secrets of a cluster. The operator can get, create and patch Secrets only in namespaces where a Role grants this. It requests only
 * metadata, so it never reads the content of a Secret; the id of the written key is in an annotation. The owner is identified by the uid in
 * the controller reference, so a new object of the same name does not own the Secret.
 */

const TYPE = "postern.dev/api-key";
const KEY_ID = "postern.dev/key-id";

interface OwnedMetadata {
  readonly ownerReferences?: ReadonlyArray<{ readonly uid: string; readonly controller?: boolean }>;
}

export function createKubernetesSecrets(client: KubeClient): SecretStore {
  const write = async (
    owner: ManifestObject,
    content: SecretContent,
    found: FoundSecret,
    query: Readonly<Record<string, string>>,
  ): Promise<string | undefined> => {
    try {
      await client.send(
        found.state === "ours" ? replacement(owner, content, found, query) : creation(owner, content, query),
      );
      return undefined;
    } catch (error) {
      // Status 422 occurs, for example, for a change of the Secret's type, which is immutable. Status 409 means that the Secret has
      // changed; it is then read again.
      if (isKubeError(error, 403) || isKubeError(error, 422)) return error.message;
      throw error;
    }
  };

  return {
    find: async (owner, name) => {
      let metadata: KubeObject["metadata"] & OwnedMetadata;
      try {
        ({ metadata } = await client.send<KubeObject>({
          method: "GET",
          path: `${pathOf(owner)}/${name}`,
          metadataOnly: true,
        }));
      } catch (error) {
        if (isKubeError(error, 404)) return { state: "absent" };
        if (isKubeError(error, 403)) return { state: "refused", message: error.message };
        throw error;
      }
      const { uid, resourceVersion, annotations = {}, ownerReferences = [] } = metadata;
      const isOurs = ownerReferences.some((reference) => reference.controller && reference.uid === owner.metadata.uid);
      if (!isOurs) return { state: "foreign" };
      return { state: "ours", keyId: annotations[KEY_ID], version: `${uid}/${resourceVersion}` };
    },
    write: (owner, content, found) => write(owner, content, found, {}),
    // A dry run checks everything that a write requires: permissions, quotas, webhooks, and the type.
    check: (owner, content, found) => write(owner, { ...content, text: "" }, found, { dryRun: "All" }),
    // Kubernetes deletes Secrets by their owner reference, so the operator needs no permission to delete.
    areCollected: true,
    remove: async () => undefined,
  };
}

const pathOf = ({ metadata: { namespace } }: ManifestObject): string => `/api/v1/namespaces/${namespace}/secrets`;

const dataOf = ({ member, text }: SecretContent) => ({ [member]: Buffer.from(text).toString("base64") });

const creation = (owner: ManifestObject, content: SecretContent, query: Readonly<Record<string, string>>) =>
  ({
    method: "POST",
    path: pathOf(owner),
    query,
    body: {
      apiVersion: "v1",
      kind: "Secret",
      type: TYPE,
      metadata: {
        name: content.name,
        labels: { "app.kubernetes.io/managed-by": "postern" },
        annotations: { [KEY_ID]: content.keyId },
        ownerReferences: [
          {
            apiVersion: API_VERSION,
            kind: owner.kind,
            name: owner.metadata.name,
            uid: owner.metadata.uid,
            controller: true,
            blockOwnerDeletion: false,
          },
        ],
      },
      data: dataOf(content),
    },
  }) as const;

/**
 * Returns the patch. It contains the Secret's uid and version, so the write fails if the Secret was changed or recreated since it was read.
 */
function replacement(
  owner: ManifestObject,
  content: SecretContent,
  { version }: Extract<FoundSecret, { state: "ours" }>,
  query: Readonly<Record<string, string>>,
) {
  const [uid, resourceVersion] = version.split("/");
  return {
    method: "PATCH",
    path: `${pathOf(owner)}/${content.name}`,
    query,
    contentType: "application/merge-patch+json",
    body: {
      type: TYPE,
      metadata: { uid, resourceVersion, annotations: { [KEY_ID]: content.keyId } },
      data: dataOf(content),
    },
  } as const;
}
