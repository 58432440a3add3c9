import "./without-eval.ts";

/* With the schemas of all kinds: pages load it when a manifest is first shown. */
export { snippetOf, yamlOf } from "../../core/manifests/from-store/yaml-text.ts";
