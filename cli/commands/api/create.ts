import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { type Fields, objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";

const fields: Fields<{ readonly apiId: string; readonly name: string }> = [
  { name: "apiId", value: (row) => row.apiId },
  { name: "name", value: (row) => row.name },
];

export const apiCreate = defineCommand({
  name: "api create",
  description: "Requires api.*.create_api. Names are not unique: a second call creates a second API.",
  options: {
    name: { type: "string", placeholder: "TEXT", help: "display name, 3 to 256 characters", required: true },
    ...connection,
    json,
  },
  response: objectShape(fields),
  run: async (options, io) => {
    const { name } = options;
    const { data } = await withApi(options, io, (api) => api.call("apis.createApi", { name }));
    const sentence = `API ${data.apiId} is created; \`postern key create --api ${data.apiId}\` creates a key in it`;
    printOne(io, options, { fields, row: { apiId: data.apiId, name }, sentence });
    return 0;
  },
});
