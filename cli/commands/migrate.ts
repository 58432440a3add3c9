import { migrateReachable, readAddress } from "../administration.ts";
import { defineCommand } from "../command.ts";
import { database, required, WAIT_BOUNDS, wait } from "../options.ts";
import { withProgress } from "../progress.ts";
import { databaseCertificateOptions, withDatabaseCertificates } from "../stores.ts";
import { parseDurationOption } from "../values.ts";

export const migrateCommand = defineCommand({
  name: "migrate",
  description: "Safe to run at any time and concurrently. The api-server does the same at startup.",
  options: {
    "database-url": database["database-url"],
    "database-url-file": database["database-url-file"],
    ...databaseCertificateOptions,
    wait,
  },
  run: async (options, io) => {
    const url = required(readAddress(options), "set --database-url, --database-url-file or DATABASE_URL");
    const address = withDatabaseCertificates(url, options);
    const waitMs = parseDurationOption("wait", options.wait, WAIT_BOUNDS);
    await withProgress(io, {}, { doing: "migrating", resources: "migrations" }, (progress) =>
      migrateReachable(address, {
        waitMs,
        onBlocked: ({ fileName }) =>
          progress.say(`${fileName} did not get its locks in time, because of a long transaction; retrying`),
        onMigration: ({ fileName, done, total }) => progress.at({ done, total, step: fileName }),
      }),
    );
    io.note("the database is at this version's schema");
    return 0;
  },
});
