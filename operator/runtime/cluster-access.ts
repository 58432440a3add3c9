/** Address and credentials of a Kubernetes API, either from a pod (`pod-access.ts`) or from a kubeconfig (`kubeconfig.ts`). */
export interface ClusterAccess {
  /** URL of the API server: `https://host:port` with an optional path, without a trailing slash. */
  readonly server: string;
  /** URL of an HTTP, HTTPS or SOCKS5 proxy. */
  readonly proxyUrl?: string | undefined;
  /**
   * Returns the credentials for a request. Called for each request, because tokens and certificates are short-lived; the implementation
   * caches them.
   */
  signIn(): Promise<SignIn>;
  /** Called if the server rejects the current credentials. The next `signIn` then reads or requests new ones. */
  forget(): void;
}

export interface SignIn {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsSettings;
}

/** TLS settings in PEM format, as `tls.connect` expects them. */
export interface TlsSettings {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly servername?: string | undefined;
  readonly rejectUnauthorized?: false | undefined;
}

/** Environment variables. They are passed in because only code in `cli/` reads the environment of the process. */
export type Environment = Readonly<Record<string, string | undefined>>;

export interface Cluster {
  readonly access: ClusterAccess;
  /** Namespace of the kubeconfig's context, or of the pod. */
  readonly namespace: string;
}
