/** Of a row that was asked for by its id, among others. */
export interface Placed {
  /** Where its id stands among those that were asked for, from 1. */
  readonly place: number;
}
