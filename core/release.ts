/** Version of this release, the same as in package.json. It is a constant, because bundles do not include package.json. */
export const RELEASE = "0.1.0";
