//! A box whose words are in the address: what is typed goes there, and a link or Back changes what stands in the box.

import { useEffect, useRef, useState } from "react";

/** A pause after which somebody has typed a word. */
const PAUSE = 150;

/** `asked`: the words of the address. `ask` puts others there. */
export function useTyped(asked: string, ask: (words: string) => void): [string, (text: string) => void] {
  const [typed, setTyped] = useState(asked);
  const written = useRef(asked);
  const put = useRef(ask);
  put.current = ask;
  useEffect(() => {
    if (asked === written.current) return;
    written.current = asked;
    setTyped(asked);
  }, [asked]);
  const words = typed.trim();
  useEffect(() => {
    if (words === written.current) return;
    const timer = setTimeout(() => {
      written.current = words;
      put.current(words);
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [words]);
  return [typed, setTyped];
}
