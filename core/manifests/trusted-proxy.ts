import * as z from "zod";
import { readProxyBlock } from "../policies/proxy-block.ts";
import { withRules } from "./fields.ts";

/*
 * CEL rule for the proxies that gates accept (policies/proxy-block.ts). The CEL functions of Kubernetes support neither zones nor IPv4
 * within IPv6, which manifests may contain. So the rule removes a zone, and checks ::fffe:10.0.0.1 instead of ::ffff:10.0.0.1; this is
 * equivalent, because the two are either both valid or both invalid.
 */
const ADDRESS = "self.split('/')[0]";
const IPV6 = `${ADDRESS}.split('%')[0].lowerAscii().replace('ffff:', 'fffe:', 1)`;
const BITS = "self.split('/')[1]";

const RULE = `(${ADDRESS}.contains(':') ? isIP(${IPV6}) && ip(${IPV6}).family() == 6 : isIP(${ADDRESS})) && (!self.contains('/')
  || (self.split('/').size() == 2 && ${BITS}.matches('^[0-9]{1,3}$') && int(${BITS}) <= (${ADDRESS}.contains(':') ? 128 : 32)))`;

/** Address or CIDR block of a proxy that forwards requests to the gate. */
export const TrustedProxy = withRules(z.string().min(1).max(64), [
  {
    rule: RULE.replace(/\s+/g, " "),
    message: "expected an IP address or a CIDR block",
    holds: (text) => readProxyBlock(text) !== undefined,
  },
]);
