import { API_VERSION } from "../../core/manifests/index.ts";
import { isKubeError, type KubeClient, type KubeObject } from "../runtime/kube-client.ts";
import type { FoundSecret, ManifestObject, SecretContent, SecretStore } from "./contract.ts";

/*
 * Secrets of a cluster. The operator has rights on them only in the namespaces that gave them: get, create and patch, by a Role. It
 * asks for the metadata alone, so no content of a Secret ever reaches it, and the annotation says which key was written. Whether a
 * Secret is the object's follows from its controller reference, by uid: a new object of the same name does not own it.
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
      // 422: such as another type, which cannot be changed. 409 is a Secret that changed since: it is looked at again.
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
    // A write without effect asks everything that a write asks: rights, quotas, webhooks, the type.
    check: (owner, content, found) => write(owner, { ...content, text: "" }, found, { dryRun: "All" }),
    // By their owner reference, so that the operator needs no right to delete any.
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

/** The uid and version make the write fail when the Secret was changed, or made again, since it was looked at. */
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
