import { countKeySecrets } from "../../../api-server/db/key-secrets.ts";
import { reencryptKeys } from "../../../api-server/domain/keys/recoverable-keys.ts";
import { createKeyVault, type KeyVault } from "../../../api-server/keys/key-vault.ts";
import { withDatabase } from "../../administration.ts";
import { defineCommand, UsageError } from "../../command.ts";
import { readEncryptionKeys } from "../../encryption-keys.ts";
import { type Fields, objectShape } from "../../fields.ts";
import { database, encryptionKeysFile, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { withProgress } from "../../progress.ts";

const BATCH = 500;
/** Maximum number of key ids in a message. */
const SHOWN_MAX = 10;

interface Reencryption {
  readonly encryptionKeyId: string;
  readonly reencrypted: number;
  readonly undecipherable: readonly string[];
  readonly inUse: readonly string[];
}

const fields: Fields<Reencryption> = [
  { name: "encryptionKeyId", title: "encryption key", value: (row) => row.encryptionKeyId },
  { name: "reencrypted", title: "reencrypted", value: (row) => row.reencrypted },
  {
    name: "undecipherable",
    title: "undecipherable",
    value: (row) => row.undecipherable,
    text: ({ undecipherable: ids }) =>
      [...ids.slice(0, SHOWN_MAX), ...(ids.length > SHOWN_MAX ? [`and ${ids.length - SHOWN_MAX} more`] : [])].join(
        ", ",
      ) || "none",
  },
  {
    name: "inUse",
    title: "still in use",
    value: (row) => row.inUse,
    text: ({ inUse }) => inUse.join(", ") || "none",
  },
];

export const keyReencrypt = defineCommand({
  name: "key reencrypt",
  description:
    "Second step of an encryption key rotation: add the new key in front and restart the api-servers, run this command, then remove the old key. Safe to repeat during normal operation. Exit code 1 if a key cannot be decrypted; it stays unchanged.",
  options: { "encryption-keys-file": encryptionKeysFile, ...database, json },
  response: objectShape(fields),
  run: async (options, io) => {
    const encryptionKeys = readEncryptionKeys(options["encryption-keys-file"], io.env);
    if (encryptionKeys === undefined) {
      throw new UsageError("set --encryption-keys-file or POSTERN_ENCRYPTION_KEYS");
    }
    const row = await withDatabase(options, async ({ db, randomBytes }) => {
      const vault = createKeyVault(encryptionKeys, { randomBytes });
      const total = (await countKeySecrets(db))
        .filter((count) => count.encryption_key_id !== vault.sealingKeyId)
        .reduce((sum, { count }) => sum + count, 0);
      const done = await withProgress(io, options, { doing: "re-encrypting", resources: "keys" }, (progress) =>
        reencryptAll(db, vault, (seen) => progress.at({ done: seen, total })),
      );
      const inUse = (await countKeySecrets(db)).map((count) => count.encryption_key_id);
      return { encryptionKeyId: vault.sealingKeyId, ...done, inUse };
    });
    printOne(io, options, { fields, row });
    return row.undecipherable.length === 0 ? 0 : 1;
  },
});

async function reencryptAll(
  db: Parameters<typeof reencryptKeys>[0]["db"],
  vault: KeyVault,
  onBatch: (seen: number) => void,
): Promise<Pick<Reencryption, "reencrypted" | "undecipherable">> {
  let reencrypted = 0;
  const undecipherable: string[] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined; ) {
    const batch = await reencryptKeys({ db, vault }, { after: cursor, max: BATCH });
    reencrypted += batch.reencrypted;
    undecipherable.push(...batch.undecipherable);
    onBatch(reencrypted + undecipherable.length);
    cursor = batch.cursor;
  }
  return { reencrypted, undecipherable };
}
