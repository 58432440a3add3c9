import { type Command, defineCommand } from "../command.ts";
import { bashCompletion } from "../completion/bash.ts";
import { fishCompletion } from "../completion/fish.ts";
import { zshCompletion } from "../completion/zsh.ts";

const SHELLS = {
  bash: { write: bashCompletion, how: "Put `source <(postern completion bash)` into ~/.bashrc." },
  zsh: { write: zshCompletion, how: "Put `source <(postern completion zsh)` into ~/.zshrc, after compinit." },
  fish: { write: fishCompletion, how: "Put `postern completion fish | source` into ~/.config/fish/config.fish." },
};

/** Returns the command that prints the completion script of a shell for `commands`. */
export const completion = (
  shell: keyof typeof SHELLS,
  commands: ReadonlyArray<{ readonly load: () => Promise<Command> }>,
): Command =>
  defineCommand({
    name: `completion ${shell}`,
    description: `${SHELLS[shell].how} Does not contact a server.`,
    options: {},
    run: async (_, io) => {
      io.out(SHELLS[shell].write(await Promise.all(commands.map(({ load }) => load()))));
      return 0;
    },
  });
