import "./chart.css";

/** Bars over time, for the eye alone: the same numbers stand in a table beside it. */
export function Bars({ data, said }: { data: readonly { key: string; name: string; value: number }[]; said: (value: number) => string }) {
  const most = Math.max(...data.map((one) => one.value), 0);
  const step = 100 / Math.max(1, data.length);
  return (
    <div className="chart" aria-hidden>
      <div className="chart-ends">
        <span>{said(most)}</span>
      </div>
      <svg viewBox="0 0 100 100" preserveAspectRatio="none">
        {data.map((one, n) => {
          const height = most === 0 ? 0 : Math.max(one.value > 0 ? 1 : 0, (100 * one.value) / most);
          return (
            <g key={one.key}>
              <rect x={n * step + step * 0.12} width={step * 0.76} y={100 - height} height={height} />
              <rect className="chart-hover" x={n * step} width={step} y={0} height={100}>
                <title>{`${one.name}: ${said(one.value)}`}</title>
              </rect>
            </g>
          );
        })}
      </svg>
      <div className="chart-ends">
        <span>{data[0]?.name}</span>
        <span>{data.at(-1)?.name}</span>
      </div>
    </div>
  );
}

/** How much of a limit is used. */
export function Meter({ label, value, most, said }: { label: string; value: number; most: number; said: string }) {
  const share = most <= 0 ? 1 : Math.min(1, value / most);
  const state = share >= 1 ? " over" : share >= 0.8 ? " near" : "";
  return (
    <div className={`meter${state}`} role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={most} aria-valuenow={Math.min(value, most)} aria-valuetext={said}>
      <span style={{ width: `${100 * share}%` }} />
    </div>
  );
}
