import { GROUP, VERSION } from "../../core/manifests/fields.ts";
import { GUARDED_LABEL } from "../injection/names.ts";
import { CONTROLLER_CLASS_LABEL } from "../source/kubernetes.ts";

/* Webhook configurations, as objects to apply. The chart contains them without `caBundle`, which the operator writes. */

export const MUTATE_PATH = "/mutate";
export const VALIDATE_PATH = "/validate";

export interface ConfigurationOptions {
  /** Name of both webhook configurations. */
  readonly name: string;
  /**
   * Namespace of the operator. The webhook does not apply to it, because the operator's own pods must start before the webhook can respond.
   */
  readonly ownNamespace: string;
  /** Returns the client configuration for a path: the operator's Service, or a URL. */
  readonly client: (path: string) => object;
  /** Controller class of the operator; omitted if the operator has no class. */
  readonly controllerClass?: string;
  /** Controller classes of other operators that have webhooks. Set only if this operator has no class. */
  readonly otherClasses?: readonly string[];
  readonly timeoutSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
}

const NAMESPACE_NAME = "kubernetes.io/metadata.name";

/** Selector for labels that require a gate. Any value except "false" does (pods/pod.ts). */
const ASKED = [
  { key: GUARDED_LABEL, operator: "Exists" },
  { key: GUARDED_LABEL, operator: "NotIn", values: ["false"] },
];

/**
 * Returns the webhook configurations. Guarded pods are admitted only with a gate, so these webhooks fail closed; other pods do not depend
 * on them. A pod is guarded by its own label or by that of its namespace. A pod with both labels is sent only to the first webhook, if its
 * own label is "true".
 *
 * If there are several operators, each receives the pods of its class. The operator without a class receives all pods except those of the
 * listed other classes, and rejects pods of unknown classes, so that no guarded pod of a class without an operator is admitted.
 */
export function webhookConfigurations(options: ConfigurationOptions): readonly object[] {
  const { name, ownNamespace, client, timeoutSeconds = 5, labels } = options;
  const classes = classesIn(options);
  const metadata = { name, ...(labels === undefined ? {} : { labels }) };
  const others = { key: NAMESPACE_NAME, operator: "NotIn", values: ["kube-system", ownNamespace] };
  const both = { admissionReviewVersions: ["v1"], sideEffects: "None", timeoutSeconds, failurePolicy: "Fail" };
  const pods = {
    ...both,
    matchPolicy: "Equivalent",
    // Makes Kubernetes call this webhook again if another webhook changes the pod afterwards, for example by adding a container.
    reinvocationPolicy: "IfNeeded",
    clientConfig: client(MUTATE_PATH),
    rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"], scope: "Namespaced" }],
  };
  return [
    {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
      metadata,
      webhooks: [
        {
          ...pods,
          name: "pods.guarded.postern.dev",
          namespaceSelector: { matchExpressions: [others] },
          objectSelector: { matchExpressions: [...ASKED, ...classes] },
        },
        {
          ...pods,
          name: "namespaces.guarded.postern.dev",
          namespaceSelector: { matchExpressions: [...ASKED, others] },
          objectSelector: {
            matchExpressions: [{ key: GUARDED_LABEL, operator: "NotIn", values: ["true"] }, ...classes],
          },
        },
      ],
    },
    {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
      metadata,
      webhooks: [
        {
          ...both,
          name: "policies.postern.dev",
          // If this webhook fails, the API server admits the object. No error is lost: the object's status reports every error that the
          // webhook would reject.
          failurePolicy: "Ignore",
          matchPolicy: "Equivalent",
          ...(classes.length === 0 ? {} : { objectSelector: { matchExpressions: classes } }),
          clientConfig: client(VALIDATE_PATH),
          rules: [
            {
              apiGroups: [GROUP],
              apiVersions: [VERSION],
              operations: ["CREATE", "UPDATE"],
              resources: ["apikeypolicies"],
              scope: "Namespaced",
            },
          ],
        },
      ],
    },
  ];
}

function classesIn({ controllerClass, otherClasses = [] }: ConfigurationOptions): readonly object[] {
  if (controllerClass !== undefined) {
    return [{ key: CONTROLLER_CLASS_LABEL, operator: "In", values: [controllerClass] }];
  }
  return otherClasses.length === 0
    ? []
    : [{ key: CONTROLLER_CLASS_LABEL, operator: "NotIn", values: [...otherClasses] }];
}
