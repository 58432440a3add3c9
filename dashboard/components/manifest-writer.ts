import "./without-eval.ts";

/* Writer of manifests. This module contains the schemas of all kinds, so pages load it only when they first show a manifest. */
export { snippetOf, yamlOf } from "../../core/manifests/from-store/yaml-text.ts";
