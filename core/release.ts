/** The version of this release, as in package.json. A bundle has no such file beside it. */
export const RELEASE = "0.1.0";
