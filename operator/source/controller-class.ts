/*
 * Supports several operators in one cluster: an object belongs to the operator of the class in its label, and without the label to the
 * operator without a class. As with an IngressClass, no spec depends on it.
 */

/** Label of manifests and guarded pods: class of the operator that is responsible. */
export const CONTROLLER_CLASS_LABEL = "postern.dev/controller-class";

/** @param controllerClass class of the operator; `undefined` for the operator without a class. An empty label matches no operator. */
export const isOfClass = (
  labels: Readonly<Record<string, string>> | undefined,
  controllerClass: string | undefined,
): boolean => labels?.[CONTROLLER_CLASS_LABEL] === controllerClass;

/** Returns the label selector for lists and watches of a class, so that an operator never reads objects of others. */
export const selectorOfClass = (controllerClass: string | undefined): string =>
  controllerClass === undefined ? `!${CONTROLLER_CLASS_LABEL}` : `${CONTROLLER_CLASS_LABEL}=${controllerClass}`;
