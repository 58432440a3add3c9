import { Link, type LinkProps } from "@tanstack/react-router";
import { Circle, CircleCheck } from "lucide-react";
import type { ReactNode } from "react";
import { useRead } from "../../api/queries.ts";
import { CodeBlock } from "../../components/code-block.tsx";
import { curlLine } from "../../components/curl-line.ts";

const EXAMPLE_API = "orders";

const policyOf = (apiName: string): string => `kubectl apply -f - <<'YAML'
apiVersion: postern.dev/v1alpha1
kind: ApiKeyPolicy
metadata: { name: orders, namespace: shop }
spec:
  selector: { matchLabels: { app: orders } }
  api: { name: ${JSON.stringify(apiName)} }
  target: { port: http }
YAML`;

interface Step {
  readonly title: string;
  readonly isDone: boolean;
  readonly link: Pick<LinkProps, "to" | "search">;
  readonly about: string;
  readonly command: string;
}

/**
 * Returns what a new workspace needs: an API, a key and a policy, each with a command to copy; `undefined` until that is known. Returns no
 * steps if all three exist, or if the person is not allowed to read them.
 */
export function useFirstSteps(hasPolicy: boolean | undefined): readonly Step[] | undefined {
  const apis = useRead("admin.listApis", { limit: 1 });
  const keys = useRead("admin.searchKeys", { limit: 1 });
  if (apis.error !== null || keys.error !== null) return [];
  if (hasPolicy === undefined || apis.data === undefined || keys.data === undefined) return undefined;
  const [api] = apis.data;
  const call = { origin: location.origin, rootKey: "YOUR_ROOT_KEY" };
  return [
    {
      title: "Create an API",
      isDone: api !== undefined,
      link: { to: "/apis", search: { create: "api" } },
      about: "An API is a named group of keys. A key is valid only for its API.",
      command: curlLine({ ...call, procedure: "apis.createApi", body: { name: EXAMPLE_API } }),
    },
    {
      title: "Create a key",
      isDone: keys.data.length > 0,
      link: { to: "/keys", search: { create: "key" } },
      about: "The response contains the key. It is shown only once.",
      command: curlLine({ ...call, procedure: "keys.createKey", body: { apiId: api?.apiId ?? "YOUR_API_ID" } }),
    },
    {
      title: "Apply a policy",
      isDone: hasPolicy,
      link: { to: "/policies" },
      about:
        "The policy puts a gate beside each pod that it selects. The gate lets only requests with a valid key through.",
      command: policyOf(api?.name ?? EXAMPLE_API),
    },
  ];
}

export function FirstSteps({ steps }: { steps: readonly Step[] }): ReactNode {
  if (steps.every(({ isDone }) => isDone)) return null;
  const next = steps.findIndex(({ isDone }) => !isDone);
  return (
    <section className="usage-panel" aria-labelledby="first-steps">
      <h2 id="first-steps">First steps</h2>
      <ol className="home-steps">
        {steps.map((step, index) => (
          <li key={step.title}>
            {step.isDone ? <CircleCheck size={20} aria-hidden /> : <Circle size={20} aria-hidden />}
            <div>
              <h3>
                <Link {...step.link}>{step.title}</Link>
                {step.isDone && <span className="muted"> (done)</span>}
              </h3>
              {index === next && (
                <>
                  <p className="muted">{step.about}</p>
                  <CodeBlock label={step.title} text={step.command} />
                </>
              )}
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}
