/** A tab is the current one if the address has exactly its search, what is missing included. */
export const EXACTLY = { exact: true, includeSearch: true, explicitUndefined: true } as const;
