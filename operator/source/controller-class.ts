/*
 * Several operators in one cluster, each with objects of its own: an object belongs to the operator whose class its label names, and one
 * without the label to the operator without a class. As with an Ingress's class, nothing in a spec depends on it.
 */

/** On an object of ours, and on a guarded pod: the class of the operator that it belongs to. */
export const CONTROLLER_CLASS_LABEL = "postern.dev/controller-class";

/** @param controllerClass is the operator's; undefined for the one without. An empty label is no operator's. */
export const isOfClass = (
  labels: Readonly<Record<string, string>> | undefined,
  controllerClass: string | undefined,
): boolean => labels?.[CONTROLLER_CLASS_LABEL] === controllerClass;

/** By which the Kubernetes API lists and watches the objects of a class: an operator never sees those of others. */
export const selectorOfClass = (controllerClass: string | undefined): string =>
  controllerClass === undefined ? `!${CONTROLLER_CLASS_LABEL}` : `${CONTROLLER_CLASS_LABEL}=${controllerClass}`;
