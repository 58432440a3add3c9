/** How to reach and sign in to a Kubernetes API: as a pod (`pod-access.ts`), or by a kubeconfig (`kubeconfig.ts`). */
export interface ClusterAccess {
  /** `https://host:port`, perhaps with a path, without a slash at the end. */
  readonly server: string;
  /** An HTTP, HTTPS or SOCKS5 proxy on the way to it. */
  readonly proxyUrl?: string | undefined;
  /** Called for each request, because tokens and certificates are short-lived; what can be kept is kept by it. */
  signIn(): Promise<SignIn>;
  /** The server refused what `signIn` returned last, so the next one must read or ask again. */
  forget(): void;
}

export interface SignIn {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsSettings;
}

/** PEM texts, as `tls.connect` takes them. */
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
