import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { profileOf, profilesFile, readProfiles, writeProfiles } from "../../profiles.ts";
import { name, profileFields } from "./fields.ts";

export const profileRemove = defineCommand({
  name: "profile remove",
  description: "The root key stays valid; revoke it with `postern rootkey revoke`.",
  options: { name, json },
  response: objectShape(profileFields),
  run: async (options, io) => {
    const file = profilesFile(io.env);
    const { current, profiles } = readProfiles(file);
    const removed = profileOf({ profiles }, options.name);
    const { [options.name]: _, ...rest } = profiles;
    writeProfiles(file, { ...(current === options.name ? {} : { current }), profiles: rest });
    const row = { ...removed, name: options.name, isCurrent: false };
    const sentence = `profile ${options.name} is deleted; its root key stays valid until you revoke it`;
    printOne(io, options, { fields: profileFields, row, sentence });
    return 0;
  },
});
