/** Address and credentials of a Kubernetes API, from a pod (`pod-access.ts`) or a kubeconfig (`kubeconfig.ts`). */
export interface ClusterAccess {
  /** `https://host:port` with an optional path, without a trailing slash. */
  readonly server: string;
  /** HTTP, HTTPS or SOCKS5 proxy. */
  readonly proxyUrl?: string | undefined;
  /** Called for each request, because tokens and certificates are short-lived. The implementation caches what it can. */
  signIn(): Promise<SignIn>;
  /** Called when the server rejected the last credentials, so that the next `signIn` reads or requests new ones. */
  forget(): void;
}

export interface SignIn {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsSettings;
}

/** PEM, as `tls.connect` expects. */
export interface TlsSettings {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly servername?: string | undefined;
  readonly rejectUnauthorized?: false | undefined;
}

/** Environment variables. Only `cli/` reads those of the process. */
export type Environment = Readonly<Record<string, string | undefined>>;

export interface Cluster {
  readonly access: ClusterAccess;
  /** The namespace of the kubeconfig's context, or of the pod. */
  readonly namespace: string;
}
