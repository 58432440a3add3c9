/*
 * For each alert, series for which it fires and for which it does not, in the notation of promtool rule tests: one value per minute,
 * `a+bxn` for n steps of b from a, `axn` for a repeated value. NS stands for the namespace label.
 */

export interface AlertCase {
  readonly alert: string;
  readonly fires: readonly string[];
  readonly quiet: readonly string[];
  /** Evaluation period in minutes. Default: 30. */
  readonly minutes?: number;
  /** Expected summary. */
  readonly says: RegExp;
}

export const ALERT_CASES: readonly AlertCase[] = [
  {
    alert: "PosternApiDegraded",
    fires: [
      'postern_degraded{NS,pod="api-0",reason="redis_unavailable"} 1x30',
      'postern_degraded{NS,pod="api-1",reason="redis_unavailable"} 0x30',
    ],
    // The condition ends before the five minutes of the alert.
    quiet: ['postern_degraded{NS,pod="api-0",reason="redis_unavailable"} 0x20 1x3 0x6'],
    says: /^api-0 is degraded \(redis_unavailable\):/,
  },
  {
    alert: "PosternApiErrors",
    fires: [
      'postern_api_requests_total{NS,procedure="keys.verifyKey",status="500"} 0+5x30',
      'postern_api_requests_total{NS,procedure="keys.verifyKey",status="200"} 0+95x30',
    ],
    quiet: [
      'postern_api_requests_total{NS,procedure="keys.verifyKey",status="500"} 0+1x30',
      'postern_api_requests_total{NS,procedure="keys.verifyKey",status="404"} 0+99x30',
    ],
    says: /^5% of API responses/,
  },
  {
    alert: "PosternPropagationDelayed",
    // The leading replica exports the value, the others export 0.
    fires: [
      'postern_relay_as_of_timestamp_seconds{NS,pod="a"} 0+60x10 600x20',
      'postern_relay_as_of_timestamp_seconds{NS,pod="b"} 0x30',
    ],
    quiet: [
      'postern_relay_as_of_timestamp_seconds{NS,pod="a"} 0+60x30',
      'postern_relay_as_of_timestamp_seconds{NS,pod="b"} 0x30',
    ],
    says: /for 30 seconds/,
  },
  {
    alert: "PosternRelayDown",
    fires: ['postern_relay_leading{NS,pod="a"} 0x30', 'postern_relay_leading{NS,pod="b"} 0x30'],
    quiet: ['postern_relay_leading{NS,pod="a"} 0x30', 'postern_relay_leading{NS,pod="b"} 1x30'],
    says: /No api-server relays changes/,
  },
  {
    alert: "PosternRelayDown",
    // Without an api-server the series is missing.
    fires: [],
    quiet: ['postern_relay_leading{NS,pod="b"} 1x30'],
    says: /No api-server relays changes/,
  },
  {
    alert: "PosternWorkspacePropagationDelayed",
    fires: ['postern_relay_lagging_workspaces{NS,pod="a"} 2x30', 'postern_relay_lagging_workspaces{NS,pod="b"} 0x30'],
    quiet: ['postern_relay_lagging_workspaces{NS,pod="a"} 2x10 0x20'],
    says: /^Changes of 2 workspaces/,
  },
  {
    alert: "PosternPostgresPoolExhausted",
    fires: ['postern_postgres_waiting{NS,pod="a"} 3x30'],
    quiet: ['postern_postgres_waiting{NS,pod="a"} 0x27 3x2'],
    says: /in a wait/,
  },
  {
    alert: "PosternRedisConnectionsNearLimit",
    fires: ['postern_redis_connection_ratio{NS,pod="a"} 0.93x30', 'postern_redis_connection_ratio{NS,pod="b"} 0.1x30'],
    // One minute of a rolling restart.
    quiet: ['postern_redis_connection_ratio{NS,pod="a"} 0.79x20 0.93x1 0.79x8'],
    says: /^Redis uses 93% of maxclients/,
  },
  {
    alert: "PosternIngestionDelayed",
    fires: ['postern_events_lag_seconds{NS,pod="a"} 400x30'],
    quiet: ['postern_events_lag_seconds{NS,pod="a"} 250x30'],
    says: /have waited for more than five minutes;/,
  },
  {
    alert: "PosternEventsDropped",
    fires: ['postern_events_trimmed_total{NS,pod="a"} 0x20 7x10', 'postern_events_dropped_total{NS,pod="a"} 0x30'],
    quiet: ['postern_events_trimmed_total{NS,pod="a"} 7x30', 'postern_events_dropped_total{NS,pod="a"} 9x30'],
    says: /were dropped/,
  },
  {
    alert: "PosternEventsDropped",
    fires: ['postern_events_trimmed_total{NS,pod="a"} 0x30', 'postern_events_dropped_total{NS,pod="a"} 0x20 9x10'],
    quiet: ['postern_events_dropped_total{NS,pod="a"} 9x30'],
    says: /were dropped/,
  },
  {
    alert: "PosternKeyQueueDelayed",
    fires: ['postern_key_queue_oldest_seconds{NS,pod="a"} 0+60x30'],
    quiet: ['postern_key_queue_oldest_seconds{NS,pod="a"} 0x10 100x20'],
    says: /have waited for more than five minutes to be created/,
  },
  {
    alert: "PosternKeyQueueFailed",
    fires: ['postern_key_queue_given_up_total{NS,pod="a",reason="not_found"} 0x20 1x10'],
    quiet: ['postern_key_queue_given_up_total{NS,pod="a",reason="not_found"} 1x30'],
    says: /could not be created \(not_found\)/,
  },
  {
    alert: "PosternBackgroundLoopFailing",
    fires: ['postern_background_failures_total{NS,loop="refills"} 0+1x40'],
    quiet: ['postern_background_failures_total{NS,loop="refills"} 0x30 3x10'],
    minutes: 40,
    says: /loop refills fails repeatedly/,
  },
  {
    alert: "PosternOperatorDown",
    fires: ['postern_operator_leading{NS,pod="a"} 0x30'],
    quiet: ['postern_operator_leading{NS,pod="a"} 1x15 0x16', 'postern_operator_leading{NS,pod="b"} 0x15 1x16'],
    says: /No operator is the leader/,
  },
  {
    alert: "PosternOperatorDown",
    fires: [],
    quiet: ['postern_operator_leading{NS,pod="a"} 1x30'],
    says: /No operator is the leader/,
  },
  {
    alert: "PosternUnguardedPods",
    // Each replica exports the same value.
    fires: ['postern_operator_unguarded_pods{NS,pod="a"} 2x30', 'postern_operator_unguarded_pods{NS,pod="b"} 2x30'],
    quiet: ['postern_operator_unguarded_pods{NS,pod="a"} 2x5 0x26'],
    says: /^2 running pods/,
  },
  {
    alert: "PosternWebhookConfigurationMissing",
    fires: ['postern_operator_webhook_configuration_present{NS,pod="a",configuration="mutating"} 0x30'],
    quiet: [
      'postern_operator_webhook_configuration_present{NS,pod="a",configuration="mutating"} 1x30',
      'postern_operator_webhook_configuration_present{NS,pod="a",configuration="validating"} 0x30',
    ],
    says: /^The MutatingWebhookConfiguration is missing/,
  },
  {
    alert: "PosternSilentPods",
    fires: ['postern_operator_silent_pods{NS,pod="a"} 1x30', 'postern_operator_silent_pods{NS,pod="b"} 1x30'],
    // Starting pods are silent until their gates have read the policy.
    quiet: ['postern_operator_silent_pods{NS,pod="a"} 3x8 0x23'],
    says: /^The gates of 1 running pods/,
  },
  {
    alert: "PosternPolicyUnsupported",
    fires: ['postern_operator_policies{NS,condition="Unsupported",status="True"} 1x30'],
    quiet: ['postern_operator_policies{NS,condition="Unsupported",status="False"} 4x30'],
    says: /cannot enforce 1 policies/,
  },
  {
    alert: "PosternPolicyStale",
    fires: ['postern_operator_policies{NS,condition="Stale",status="True"} 3x30'],
    quiet: ['postern_operator_policies{NS,condition="Stale",status="False"} 3x30'],
    says: /^Gates of 3 policies use/,
  },
  {
    alert: "PosternLimitsExceeded",
    // Followers have no data about policies.
    fires: [
      'postern_operator_policies{NS,pod="a",condition="LimitsExceeded",status="True"} 0x28 2x2',
      'postern_operator_policies{NS,pod="b",condition="LimitsExceeded",status="True"} 0x30',
    ],
    quiet: [
      'postern_operator_policies{NS,pod="a",condition="LimitsExceeded",status="True"} 2x15 0x15',
      'postern_operator_policies{NS,pod="a",condition="LimitsExceeded",status="False"} 2x30',
      'postern_operator_policies{NS,pod="a",condition="Stale",status="True"} 2x30',
    ],
    says: /^Gates of 2 policies exceeded limits/,
  },
  {
    alert: "PosternObjectsNotReady",
    fires: [
      'postern_operator_objects{NS,pod="a",kind="Role",ready="False"} 1x30',
      'postern_operator_objects{NS,pod="b",kind="Role",ready="False"} 1x30',
    ],
    quiet: ['postern_operator_objects{NS,pod="a",kind="Role",ready="True"} 9x30'],
    says: /^1 objects of kind Role/,
  },
  {
    alert: "PosternWatchStale",
    fires: [`postern_operator_watch_age_seconds{NS,pod="a",resource="roles"} ${"+Inf ".repeat(31)}`],
    quiet: ['postern_operator_watch_age_seconds{NS,pod="a",resource="roles"} 60x30'],
    says: /^a misses changes of roles/,
  },
  {
    alert: "PosternQueueBacklog",
    fires: [
      'postern_operator_queue_depth{NS,pod="a",kind="Role"} 500x30',
      'postern_operator_queue_depth{NS,pod="b",kind="Role"} 0x30',
    ],
    // A resync of many objects empties the queue again.
    quiet: ['postern_operator_queue_depth{NS,pod="a",kind="Role"} 2000x20 50x2 2000x8'],
    says: /More than 100 objects of kind Role/,
  },
  {
    alert: "PosternQueueLatencyHigh",
    fires: [
      'postern_operator_queue_wait_duration_seconds_bucket{NS,kind="Role",le="30"} 0+1x40',
      'postern_operator_queue_wait_duration_seconds_bucket{NS,kind="Role",le="100"} 0+5x40',
      'postern_operator_queue_wait_duration_seconds_bucket{NS,kind="Role",le="+Inf"} 0+5x40',
    ],
    quiet: [
      'postern_operator_queue_wait_duration_seconds_bucket{NS,kind="Role",le="30"} 0+5x40',
      'postern_operator_queue_wait_duration_seconds_bucket{NS,kind="Role",le="+Inf"} 0+5x40',
    ],
    minutes: 40,
    says: /kind Role wait for more than 30 seconds/,
  },
  {
    alert: "PosternReconcileErrors",
    fires: ['postern_operator_retries_total{NS,kind="Role"} 0+6x40'],
    quiet: ['postern_operator_retries_total{NS,kind="Role"} 0+1x40'],
    minutes: 40,
    says: /kind Role fail/,
  },
  {
    alert: "PosternOperatorApiErrors",
    fires: [
      'postern_operator_api_calls_total{NS,procedure="roles.list",result="error"} 0+10x30',
      'postern_operator_api_calls_total{NS,procedure="roles.list",result="success"} 0+10x30',
    ],
    quiet: [
      'postern_operator_api_calls_total{NS,procedure="roles.list",result="refusal"} 0+10x30',
      'postern_operator_api_calls_total{NS,procedure="roles.list",result="success"} 0+10x30',
    ],
    says: /^50% of the operator's API calls/,
  },
  {
    alert: "PosternOperatorForbidden",
    fires: ['postern_operator_kubernetes_requests_total{NS,method="PATCH",resource="roles/status",code="403"} 0+3x40'],
    // Concurrent writers of one object are normal.
    quiet: ['postern_operator_kubernetes_requests_total{NS,method="PATCH",resource="roles/status",code="409"} 0+3x40'],
    minutes: 40,
    says: /responds 403 to the operator for roles\/status/,
  },
  {
    alert: "PosternWebhookCertificateExpiring",
    fires: ['postern_operator_webhook_certificate_expiry_timestamp_seconds{NS,pod="a"} 200000x90'],
    quiet: [
      'postern_operator_webhook_certificate_expiry_timestamp_seconds{NS,pod="a"} 2000000x90',
      // A replica without a certificate is unready, which other alerts report.
      'postern_operator_webhook_certificate_expiry_timestamp_seconds{NS,pod="b"} 0x90',
    ],
    minutes: 90,
    says: /in a expires in 2d/,
  },
  {
    alert: "PosternGateNotReady",
    fires: ['postern_sidecar_ready{NS,pod="a"} 0x30', 'postern_sidecar_ready{NS,pod="b"} 1x30'],
    quiet: ['postern_sidecar_ready{NS,pod="a"} 0x4 1x26'],
    says: /shop\/a is not ready/,
  },
  {
    alert: "PosternGateStale",
    fires: ['postern_sidecar_staleness_seconds{NS,pod="a"} 0x5 60+60x25'],
    quiet: ['postern_sidecar_staleness_seconds{NS,pod="a"} 1x30'],
    says: /shop\/a has received no change for 2/,
  },
  {
    alert: "PosternGateServingStale",
    fires: ['postern_sidecar_stale_decisions_total{NS,pod="a"} 0+9x30'],
    quiet: ['postern_sidecar_stale_decisions_total{NS,pod="a"} 9x30'],
    says: /shop\/a decides on data older/,
  },
  {
    alert: "PosternGatePolicyDeleted",
    fires: ['postern_sidecar_policy_deleted{NS,pod="a"} 1x60'],
    quiet: ['postern_sidecar_policy_deleted{NS,pod="a"} 1x20 0x40'],
    minutes: 60,
    says: /shop\/a enforces a deleted policy/,
  },
  {
    alert: "PosternGateCountersUnavailable",
    fires: ['postern_sidecar_counter_failures_total{NS,pod="a",kind="limits"} 0+4x30'],
    quiet: ['postern_sidecar_counter_failures_total{NS,pod="a",kind="limits"} 4x30'],
    says: /Gates in shop cannot count limits/,
  },
  {
    alert: "PosternGateInternalErrors",
    fires: ['postern_sidecar_internal_errors_total{NS,pod="a",source="exchange"} 0x25 1x5'],
    quiet: ['postern_sidecar_internal_errors_total{NS,pod="a",source="exchange"} 1x30'],
    says: /shop\/a had an internal error/,
  },
  {
    alert: "PosternUpstreamErrors",
    fires: [
      'postern_sidecar_upstream_failures_total{NS,pod="a",reason="timeout"} 0+10x30',
      'postern_sidecar_requests_total{NS,pod="a",code="VALID"} 0+100x30',
    ],
    quiet: [
      'postern_sidecar_upstream_failures_total{NS,pod="a",reason="timeout"} 0+1x30',
      'postern_sidecar_requests_total{NS,pod="a",code="VALID"} 0+100x30',
      'postern_sidecar_requests_total{NS,pod="a",code="NOT_FOUND"} 0+900x30',
    ],
    says: /shop\/a did not respond to 10% of/,
  },
  {
    alert: "PosternGateEventsDropped",
    fires: ['postern_sidecar_events_dropped_total{NS,pod="a"} 0x25 5x5'],
    quiet: ['postern_sidecar_events_dropped_total{NS,pod="a"} 5x30'],
    says: /Gates in shop dropped/,
  },
];
