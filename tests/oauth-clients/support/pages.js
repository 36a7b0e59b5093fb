// What a person does on the pages, by the words that they read there.

import assert from 'node:assert/strict'

export const email = (page) => page.getByLabel('E-mail address')
export const password = (page) => page.getByLabel('Password', { exact: true })
export const signInButton = (page) => page.getByRole('button', { name: 'Sign in' })
export const allowButton = (page) => page.getByRole('button', { name: 'Allow', exact: true })
export const denyButton = (page) => page.getByRole('button', { name: 'Don’t allow' })

/** Opens the question and signs in; leaves the page of the decision. */
export async function signIn(page, address, person) {
  await page.goto(String(address))
  await assertTitle(page, 'Sign in · okt')
  await email(page).fill(person.email)
  await password(page).fill(person.password)
  await signInButton(page).click()
  await allowButton(page).waitFor()
}

export async function assertTitle(page, title) {
  assert.equal(await page.title(), title)
}
