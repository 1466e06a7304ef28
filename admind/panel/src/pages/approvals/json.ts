/* JSON as it was written, for review: ui/json.ts, which other pages use, too. */
export * from "../../ui/json";
