// Counts what an address does in a window of time. A Durable Object is one process for
// one address, so the count is exact wherever the requests come in.
import { DurableObject } from 'cloudflare:workers';
import type { Env } from './settings.ts';

interface Window {
  end: number;
  used: number;
}

export class Counter extends DurableObject<Env> {
  /** Returns 0, or the seconds until there is room again. */
  async take(limit: number, seconds: number): Promise<number> {
    const now = Date.now();
    let window = await this.ctx.storage.get<Window>('window');
    if (!window || window.end <= now) {
      window = { end: now + seconds * 1000, used: 0 };
      await this.ctx.storage.setAlarm(window.end);
    }
    if (window.used >= limit) return Math.ceil((window.end - now) / 1000);
    window.used++;
    await this.ctx.storage.put('window', window);
    return 0;
  }

  override async alarm(): Promise<void> {
    await this.ctx.storage.deleteAll();
  }
}
