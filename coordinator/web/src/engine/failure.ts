// The failure of a device, for those who wait for its answers.

/** Tells its subscribers of a failure, once. It keeps nothing of those who have unsubscribed. */
export class Failure {
  private error: Error | undefined;
  private readonly listeners = new Set<(error: Error) => void>();

  /** The device has failed. Only the first failure counts. */
  set(error: Error): void {
    if (this.error) return;
    this.error = error;
    for (const hear of this.listeners) hear(error);
    this.listeners.clear();
  }

  /** Calls `hear` when the device fails, at once if it has failed. Returns the function that unsubscribes. */
  subscribe(hear: (error: Error) => void): () => void {
    if (this.error) {
      hear(this.error);
      return () => {};
    }
    this.listeners.add(hear);
    return () => void this.listeners.delete(hear);
  }

  /** The result of `work`, or the failure if that is first: a device that fails may never answer. */
  race<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.error) return reject(this.error);
      const unsubscribe = this.subscribe(reject);
      void work().then(resolve, reject).finally(unsubscribe);
    });
  }
}
