/** Version of this release, as in package.json, which bundles do not include. */
export const RELEASE = "0.1.0";
